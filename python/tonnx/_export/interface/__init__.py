"""What callers of tonnx.export see: arguments, names of inputs and outputs, messages, and the OnnxProgram."""
