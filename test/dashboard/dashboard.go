package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
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
	ID int `json:"id"`
	// Description says what is counted.
	Description string `json:"description"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Datasource  Source `json:"datasource"`
	GridPos     struct {
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
	values := map[string]string{}
	for _, variable := range d.Templating.List {
		values[variable.Name] = ".*"
	}
	var all []Selector
	for _, query := range d.Queries(values) {
		found, err := Parse(query.Expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", query.Of, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// Query is a query as Grafana sends it. The field Of names its panel.
type Query struct{ Of, Expr string }

// Queries returns the queries of all panels, with the values of the dashboard's variables.
func (d Dashboard) Queries(values map[string]string) (all []Query) {
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			all = append(all, Query{fmt.Sprintf("panel %q, query %s", panel.Title, target.RefID), Fill(target.Expr, values)})
		}
	}
	return all
}

// Fill returns an expression with the values of a dashboard's variables, and of Grafana's own.
func Fill(expr string, values map[string]string) string {
	expr = strings.ReplaceAll(expr, "$__rate_interval", "5m")
	for name, value := range values {
		expr = strings.ReplaceAll(expr, "$"+name, value)
	}
	return expr
}

// Asks returns the series and the label of which a variable has the values; ok is false for a
// variable of another kind.
func (v Variable) Asks() (series, label string, ok bool) {
	var query struct {
		Query string `json:"query"`
	}
	if v.Type != "query" || json.Unmarshal(v.Query, &query) != nil {
		return "", "", false
	}
	rest, ok := strings.CutPrefix(query.Query, "label_values(")
	at := strings.LastIndex(rest, ", ")
	if !ok || at < 0 {
		return "", "", false
	}
	return rest[:at], strings.TrimSuffix(rest[at+2:], ")"), true
}

// Selector asks for series.
type Selector struct {
	Metric string
	// Labels are those that the series must have: the query matches them, or groups by them.
	Labels []string
}

// Parse checks a query and returns its selectors.
func Parse(query string) ([]Selector, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", query, err)
	}
	if kind := expr.Type(); kind != parser.ValueTypeVector && kind != parser.ValueTypeScalar {
		return nil, fmt.Errorf("%q: Grafana cannot show a %s", query, kind)
	}
	var found []Selector
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		if asked, ok := node.(*parser.VectorSelector); ok && err == nil {
			var s Selector
			s, err = selector(asked, path)
			found = append(found, s)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%q: %w", query, err)
	}
	return found, nil
}

// isFilter reports whether an operand only says which series of the other one count, so that nothing
// above sees its labels.
func isFilter(of *parser.BinaryExpr, operand parser.Node) bool {
	return (of.Op == parser.LAND || of.Op == parser.LUNLESS) && parser.Node(of.RHS) == operand
}

// selector returns what is asked for, below the expressions of the path.
func selector(asked *parser.VectorSelector, path []parser.Node) (Selector, error) {
	s := Selector{Metric: asked.Name}
	quantile := false
	for i, above := range path {
		switch above := above.(type) {
		case *parser.AggregateExpr:
			if !above.Without {
				s.Labels = append(s.Labels, above.Grouping...)
			}
			if quantile && slices.Contains(above.Grouping, "le") == above.Without {
				return s, fmt.Errorf("histogram_quantile of %s without the label le", s.Metric)
			}
		case *parser.BinaryExpr:
			if isFilter(above, append(slices.Clip(path), asked)[i+1]) {
				s.Labels = nil
			}
			if above.VectorMatching != nil && above.VectorMatching.On {
				s.Labels = append(s.Labels, above.VectorMatching.MatchingLabels...)
			}
		case *parser.Call:
			quantile = quantile || above.Func.Name == "histogram_quantile"
		}
	}
	for _, matcher := range asked.LabelMatchers {
		if matcher.Name != "__name__" {
			s.Labels = append(s.Labels, matcher.Name)
		}
	}
	if quantile {
		s.Labels = append(s.Labels, "le")
	}
	slices.Sort(s.Labels)
	s.Labels = slices.Compact(s.Labels)
	return s, nil
}
