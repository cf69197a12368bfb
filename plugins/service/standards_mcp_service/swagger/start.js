SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#page",
  tryItOutEnabled: true,
  displayRequestDuration: true,
});
