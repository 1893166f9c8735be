"""Writers: plans turned into changes of the user's text, a module a concept and language."""
