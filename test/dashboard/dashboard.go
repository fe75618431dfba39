package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Dashboard is a Grafana dashboard, as far as is looked at.
type Dashboard struct {
	UID           string  `json:"uid"`
	Title         string  `json:"title"`
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []Panel `json:"panels"`
	Templating    struct {
		List []Variable `json:"list"`
	} `json:"templating"`
}

// Panel is one of a dashboard's, or a row's title.
type Panel struct {
	ID         int    `json:"id"`
	Type       string `json:"type"`
	Title      string `json:"title"`
	Datasource Source `json:"datasource"`
	GridPos    struct {
		X int `json:"x"`
		Y int `json:"y"`
		W int `json:"w"`
		H int `json:"h"`
	} `json:"gridPos"`
	Targets []Target `json:"targets"`
}

// Target is a query of a panel.
type Target struct {
	RefID      string `json:"refId"`
	Expr       string `json:"expr"`
	Datasource Source `json:"datasource"`
}

// Source is where a query goes.
type Source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Variable is what a dashboard's reader chooses. Query is text for a data source.
type Variable struct {
	Name  string          `json:"name"`
	Type  string          `json:"type"`
	Query json.RawMessage `json:"query"`
}

// Read reads a dashboard's file.
func Read(path string) (Dashboard, error) {
	var d Dashboard
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return d, fmt.Errorf("read the dashboard %s: %w", path, err)
	}
	return d, nil
}

// Selectors are those of all queries.
func (d Dashboard) Selectors() ([]Selector, error) {
	var all []Selector
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			found, err := Parse(d.fill(target.Expr))
			if err != nil {
				return nil, fmt.Errorf("panel %q, query %s: %w", panel.Title, target.RefID, err)
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// fill puts something for the dashboard's variables and Grafana's own.
func (d Dashboard) fill(expr string) string {
	expr = strings.ReplaceAll(expr, "$__rate_interval", "5m")
	for _, variable := range d.Templating.List {
		expr = strings.ReplaceAll(expr, "$"+variable.Name, ".*")
	}
	return expr
}
