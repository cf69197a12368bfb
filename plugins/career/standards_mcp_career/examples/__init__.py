"""A resume of roles and skills, atoms of it, and opportunities: what ``career try`` works on."""
