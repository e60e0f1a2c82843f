"""What the command line shows: values in, text or plain data out. Pure."""
