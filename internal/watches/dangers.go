package watches

// Danger is a setting by which a user who writes a CR can do more than write a CR.
type Danger struct{ Setting, Effect, Remedy string }

// Dangers returns the dangerous settings of the watch.
func (w *Watch) Dangers() []Danger {
	found := w.Chart.dangers()
	if !w.MarkUnsafe {
		found = append(found, Danger{
			"markUnsafe is false", "everybody who may write such a resource can run code in this operator (template injection, CWE-1336, as in CVE-2021-3583)",
			"remove the line; text of a resource is then data",
		})
	}
	return found
}
