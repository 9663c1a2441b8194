// One import for applications: the player, its devices, its clocks and its decoder.

@_exported public import Observation
@_exported public import TuttiClockSync
@_exported public import TuttiDeviceOutput
@_exported public import TuttiFFmpegMedia
@_exported public import TuttiLinuxHost
@_exported public import TuttiPlayback
@_exported public import TuttiPlayout
@_exported public import TuttiRealTime
@_exported public import TuttiTiming
