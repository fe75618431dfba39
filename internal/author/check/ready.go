package check

import (
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// ready adds tasks that write the condition Ready where the watch does not say that the content does.
func (p *Project) ready(u *Unit) {
	if u.Watch.Ready == "content" {
		return
	}
	for _, t := range u.Tasks {
		if rights.Module(t) != "k8s_status" || !writesReady(t.Arg("conditions")) {
			continue
		}
		f := finding{
			"ready", report.Info, t.Position, "the task writes the condition Ready, and the manager writes it too until a run has written it",
			"after an update of the content the manager writes Ready again, until a run has written it", "add ready: content to the watch of " + u.Watch.GVK.Kind + " in watches.yaml",
		}
		if u.Watch.Ready == "manager" {
			f.severity, f.message = report.Warning, "the task writes the condition Ready, which ready: manager of the watch gives to the manager"
			f.why = "the manager overwrites what the task has written"
			f.remedy = "write ready: content in watches.yaml, or remove the condition from the task"
		}
		p.add(f)
	}
}

func writesReady(conditions *yaml.Node) bool {
	return slices.ContainsFunc(source.Items(conditions), func(one *yaml.Node) bool { return source.Scalar(one, "type") == "Ready" })
}
