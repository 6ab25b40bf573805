"""The top floor: loaders, bridges to other systems, the command line. See `irgrad` for the public names."""
