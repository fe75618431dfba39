// Package config has the settings of a manager: flags, environment and what the
// machine allows, and every check of them that needs no content and no API server.
package config
