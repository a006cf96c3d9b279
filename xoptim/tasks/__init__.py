"""One function for each thing a user does with a model; the command line is made of them."""
