"""AWS Lake Formation: who may read which columns of the tables that dq registers, and how they are tagged."""
