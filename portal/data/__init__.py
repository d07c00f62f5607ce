"""What is known of products: questions to contracts and the store, answered as plain values."""
