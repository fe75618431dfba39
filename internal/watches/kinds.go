package watches

import (
	"cmp"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ContentKind has the properties of a kind of content, so that other code need not ask which kind a
// watch has. Roles and playbooks are one kind, charts another, and a Go program may bring its own.
type ContentKind struct {
	// Heading stands in the log above a run's message of several lines, such as Helm Chart. "" is
	// Content.
	Heading string
	// AnnotationPrefix begins the annotations with which CRs control their own runs. It ends
	// with a slash. "" is CustomAnnotations.
	AnnotationPrefix string
	// Annotations are the names, without the prefix, of those that this kind of content has
	// beside those of every kind.
	Annotations []string
	// ChecksEachPeriod is true if the content decides after each period whether a run is needed.
	// If false, each period leads to a run.
	ChecksEachPeriod bool
	// CanBeInterrupted is true if the deletion of a CR ends its run, because the finalizer handles
	// the remains of such a run. If false, the run finishes first.
	CanBeInterrupted bool
	// TracksObjects is true if the content knows which objects of a deleted CR still exist.
	TracksObjects bool
	// Once is true if run-once can run the content, and Previews if diff can show the changes of a run.
	Once, Previews bool

	// marks reports whether a CR shows that this kind of content ran for it.
	marks func(*unstructured.Unstructured) bool
}

// CustomAnnotations is the prefix of the annotations of CRs whose content is of a kind that a Go
// program brings, if that names no other.
const CustomAnnotations = "ensign-operator.github.io/"

// everyAnnotation are the names, without a prefix, of the annotations that every kind of content has.
var everyAnnotation = []string{"reconcile-period", "paused", "reconcile-requested-at", "cancel-requested-at", "abandon"} //nolint:gochecknoglobals // A constant.

// KindOfContent returns the kind of content that ran for a CR, as far as the CR shows it. A user
// who may write the CR can write this too: it proves nothing.
func KindOfContent(cr *unstructured.Unstructured) (kind ContentKind, shown bool) {
	for _, kind := range []ContentKind{chartKind, ansibleKind} {
		if kind.marks(cr) {
			return kind, true
		}
	}
	return ContentKind{}, false
}

// AnnotationPrefixes returns those that the annotations of a CR may have whose kind of content is
// not known.
func AnnotationPrefixes() []string {
	return []string{AnsibleAnnotations, ChartAnnotations, CustomAnnotations}
}

// ContentKind returns the properties of the kind of the watch's content.
func (w *Watch) ContentKind() ContentKind {
	switch {
	case w.Custom != nil:
		kind := *w.Custom
		kind.Heading = cmp.Or(kind.Heading, "Content")
		kind.AnnotationPrefix = cmp.Or(kind.AnnotationPrefix, CustomAnnotations)
		return kind
	case w.Chart != nil:
		return chartKind
	default:
		return ansibleKind
	}
}

// AnnotationPrefix returns the prefix of the annotations with which the watch's CRs control
// their own runs.
func (w *Watch) AnnotationPrefix() string { return w.ContentKind().AnnotationPrefix }

// Annotations returns the names of all annotations of that prefix that mean something.
func (w *Watch) Annotations() []string {
	kind := w.ContentKind()
	names := slices.Concat(everyAnnotation, kind.Annotations)
	for i := range names {
		names[i] = kind.AnnotationPrefix + names[i]
	}
	return names
}

// Prefixes returns the prefixes below which annotations of every kind of content count for the
// watch's CRs, its own one first: people take one of the others for it. A program that has chosen
// a prefix of its own has that one alone.
func (w *Watch) Prefixes() []string {
	own, all := w.AnnotationPrefix(), AnnotationPrefixes()
	if !slices.Contains(all, own) {
		return []string{own}
	}
	return append([]string{own}, slices.DeleteFunc(all, func(prefix string) bool { return prefix == own })...)
}

// AnnotationNames returns the names that an annotation of every kind of content may have, the one
// with the watch's own prefix first.
func (w *Watch) AnnotationNames(annotation string) []string {
	names := w.Prefixes()
	for i := range names {
		names[i] += annotation
	}
	return names
}

// IsKnownAnnotation reports whether an annotation of the name has an effect on the watch's CRs.
func (w *Watch) IsKnownAnnotation(name string) bool {
	return slices.Contains(w.Annotations(), name) || slices.ContainsFunc(everyAnnotation, func(every string) bool { return slices.Contains(w.AnnotationNames(every), name) })
}

// Quoted quotes the text of an annotation for a message, and cuts it: it may have 256 KiB
// and must not fill the status.
func Quoted(text string) string {
	const limit = 64
	if len(text) > limit {
		return strconv.Quote(text[:limit]) + "…"
	}
	return strconv.Quote(text)
}

// contentFields are the fields of an entry that one kind of content declares.
type contentFields struct {
	// has is how messages name the content: the watch has a chart.
	has string
	// chooses are the fields of which an entry with this kind of content has one.
	chooses []string
	// parsers are those of all fields that only fit this kind of content.
	parsers map[string]fieldParser
	// complete checks the fields together and sets those of the watch.
	complete func(search Search)
}

// contentFields returns the fields of each kind of content, and sets their defaults. Entries that
// choose no kind have the last one.
func (p *parser) contentFields(d *rawWatch) []contentFields {
	if p.custom != nil {
		return []contentFields{p.customFields(d)}
	}
	return []contentFields{p.chartFields(d), p.ansibleFields(d)}
}

// completeContent completes the watch as the kind of content does that the entry chooses, and adds
// a fault for each field that only fits another kind.
func (p *parser) completeContent(d *rawWatch, kinds []contentFields, search Search) {
	chosen := slices.IndexFunc(kinds, func(k contentFields) bool { return k.lineOfChoice(d.lines) != 0 })
	if chosen < 0 {
		chosen = len(kinds) - 1
	}
	for i, other := range kinds {
		if i != chosen {
			p.rejectUnfit(d.lines, other, kinds[chosen])
		}
	}
	kinds[chosen].complete(search)
}

// lineOfChoice returns the line of the field that chooses the kind of content; 0 if there is none.
func (k contentFields) lineOfChoice(lines map[string]int) int {
	for _, field := range k.chooses {
		if lines[field] != 0 {
			return lines[field]
		}
	}
	return 0
}

// rejectUnfit adds a fault for each field that only fits the other kind of content.
func (p *parser) rejectUnfit(lines map[string]int, other, chosen contentFields) {
	for field := range other.parsers {
		line := lines[field]
		switch {
		case line == 0:
		case slices.Contains(other.chooses, field):
			p.addFault(line, "the watch has a %s (line %d) and a %s; keep one of them", chosen.has, chosen.lineOfChoice(lines), other.has)
		default:
			p.addFault(line, "%q does not fit a watch with a %s; remove it", field, chosen.has)
		}
	}
}

// recordLines makes the parsers note the line of each field that the entry has.
func recordLines(fields map[string]fieldParser, lines map[string]int) map[string]fieldParser {
	for name, parse := range fields {
		fields[name] = func(field string, n *yaml.Node) {
			lines[field] = n.Line
			parse(field, n)
		}
	}
	return fields
}
