"""Arguments of the model: names, dynamic shapes, caches, the sizes torch assumes."""
