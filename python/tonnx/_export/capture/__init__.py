"""A live model to a torch.export program: the ways to trace it, and stand-ins for what torch.export cannot follow."""
