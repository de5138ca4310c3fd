"""Trials on many cores and machines, in messages of JSON over TLS or inherited sockets."""
