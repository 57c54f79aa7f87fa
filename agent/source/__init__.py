"""Static facts that the compiler pass left inside of programs: functions, and the effort of source lines."""
