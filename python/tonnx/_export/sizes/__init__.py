"""Open (dynamic) sizes: what the user asks for, at which sizes to trace, and whether the trace holds at others."""
