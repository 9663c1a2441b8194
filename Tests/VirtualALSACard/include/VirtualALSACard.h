// Nothing is called by name: ALSA loads this library and finds the plug-in's entry by itself.
#pragma once
