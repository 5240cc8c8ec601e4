package httpapi

import (
	_ "embed"
	"net/http"
)

// OpenAPI is the description of the API: every path, parameter and answer.
//
//go:embed openapi.yaml
var OpenAPI []byte

func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(OpenAPI) // nobody is left to be told if that fails
}
