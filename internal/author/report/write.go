package report

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/ensign-operator/ensign/internal/sanitize"
)

// Relative makes the files below dir relative to it.
func (r Report) Relative(dir string) Report {
	for i := range r.Findings {
		r.Findings[i].File = Relative(dir, r.Findings[i].File)
	}
	for i := range r.Silenced {
		r.Silenced[i].File = Relative(dir, r.Silenced[i].File)
	}
	return r
}

// Relative returns the path of a file in dir, and another path as it is.
func Relative(dir, file string) string {
	if path, err := filepath.Rel(dir, file); err == nil && filepath.IsAbs(file) && !strings.HasPrefix(path, "..") {
		return path
	}
	return file
}

// Write writes the report as text, json or sarif.
func (r Report) Write(out io.Writer, format, version string) error {
	switch format {
	case "json":
		return encode(out, struct {
			Report

			Summary map[string]int `json:"summary"`
		}{r, map[string]int{"error": r.Count(Error), "warning": r.Count(Warning), "info": r.Count(Info), "silenced": len(r.Silenced)}})
	case "sarif":
		return encode(out, r.sarif(version))
	default:
		return r.text(out)
	}
}

func encode(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

func (r Report) text(out io.Writer) error {
	var text strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&text, "%s: %s: %s [%s]\n    why: %s\n    remedy: %s\n", f.Place(), f.Severity, f.Message, f.ID, f.Why, f.Remedy)
	}
	fmt.Fprintf(&text, "%s, %s, %d info, %d silenced; %d files and %d tasks read\n",
		count(r.Count(Error), "error"), count(r.Count(Warning), "warning"), r.Count(Info), len(r.Silenced), r.Files, r.Tasks)
	_, err := io.WriteString(out, sanitize.Text(text.String()))
	return err
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// sarif returns the report in version 2.1.0 of SARIF, as code hosts read it.
func (r Report) sarif(version string) any {
	type object = map[string]any
	results, rules, known := []object{}, []object{}, map[string]bool{}
	for _, f := range r.Findings {
		if !known[f.ID] {
			known[f.ID] = true
			rules = append(rules, object{"id": f.ID, "shortDescription": object{"text": f.ID}, "help": object{"text": f.Why + ". Remedy: " + f.Remedy}})
		}
		results = append(results, f.sarif(nil))
	}
	for _, s := range r.Silenced {
		results = append(results, s.sarif([]object{{"kind": "inSource", "justification": s.Reason}}))
	}
	return object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{
			"tool":    object{"driver": object{"name": "ensign check", "version": version, "rules": rules}},
			"results": results,
		}},
	}
}

func (f Finding) sarif(suppressions []map[string]any) map[string]any {
	type object = map[string]any
	location := object{"artifactLocation": object{"uri": filepath.ToSlash(f.File)}}
	if f.Line > 0 {
		location["region"] = object{"startLine": f.Line, "startColumn": max(f.Column, 1)}
	}
	level := map[Severity]string{Error: "error", Warning: "warning", Info: "note"}[f.Severity]
	result := object{
		"ruleId": f.ID, "level": level, "message": object{"text": f.Message + ". " + f.Why + ". Remedy: " + f.Remedy},
		"locations": []object{{"physicalLocation": location}},
	}
	if suppressions != nil {
		result["suppressions"] = suppressions
	}
	return result
}
