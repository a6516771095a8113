"""How a group stands in a cluster: its stored plan, kept or made anew, its pods against its caps, and what is wrong."""
