// This lets the package declare a function that another one has.
