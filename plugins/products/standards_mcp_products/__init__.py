"""Search in a product catalogue of one's own, kept in Chroma.

The plugin is `standards_mcp_products.plugin.ProductsPlugin`.
"""
