"""How close is the call? The provably nearest image that changes a classifier's mind."""
