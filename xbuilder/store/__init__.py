"""The nodes of a graph: order, producers, consumers, buckets; the only place where they change."""
