"""Search your own product catalogue, stored in Chroma.

The plugin is `standards_mcp_products.plugin.ProductsPlugin`.
"""
