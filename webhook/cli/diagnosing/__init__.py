"""What is wrong with an installation: facts from get and list, and judgements that need nothing but them."""
