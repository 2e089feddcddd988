"""English texts. Keys are shared by all languages; values are what people read. `locales.spoken` puts them together."""
