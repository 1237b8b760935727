"""Branch and bound over linear programs, for networks small enough for them."""
