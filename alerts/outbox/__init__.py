"""Messages on their way: the queue, what of it is next, its delivery, and what becomes of it."""
