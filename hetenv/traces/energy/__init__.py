"""Signal formats, one file each: carbon intensity, prices, renewable power, weather. See `hetenv.traces.SERIES_FORMATS`."""
