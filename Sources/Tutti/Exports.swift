// One import for applications: the player, its devices, its clocks and its decoder.

@_exported public import ClockSync
@_exported public import DeviceOutput
@_exported public import FFmpegMedia
@_exported public import LinuxHost
@_exported public import Observation
@_exported public import Playback
@_exported public import Playout
@_exported public import RealTime
@_exported public import Timing
