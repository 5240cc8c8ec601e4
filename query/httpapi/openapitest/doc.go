// Package openapitest holds the HTTP API against its description, query/httpapi/openapi.yaml: that it is a valid OpenAPI document, that it
// has every route and no other, and that what a recorder answers is what it says. It is a module of its own, so that what reads OpenAPI
// documents is no part of the product.
package openapitest
