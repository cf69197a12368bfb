"""Which atoms meet the requirements of an opportunity, with their evidence."""
