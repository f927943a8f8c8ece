"""A torch.export program in the form that the C++ core reads: the JSON of a .pt2 file; the weights are not copied."""
