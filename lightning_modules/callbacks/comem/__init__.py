"""CoMem's lifecycle as Lightning callbacks: one class a mechanism, in a fixed order whatever the order of the list."""
