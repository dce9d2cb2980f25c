"""How to get there: differences become commands. Each operation pairs with the fact it reads."""
