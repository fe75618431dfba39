package controller

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	examplecomv1 "github.com/ensign-operator/ensign/examples/visitors/go/api/v1"
)

// workloads are those of a site, as the API server has them.
type workloads struct {
	database          *appsv1.StatefulSet
	backend, frontend *appsv1.Deployment
	// begun tells whether the site has had a database that was ready.
	begun bool
}

// ready reports whether a Deployment has the pods that it asks for, and no others.
func ready(d *appsv1.Deployment) bool {
	want := *d.Spec.Replicas
	return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == want && d.Status.Replicas == want && d.Status.ReadyReplicas == want
}

// report writes what there is into the status of a VisitorsApp. What could not be applied is not ready,
// although what an earlier spec asked for may still be up.
func (i Images) report(app *examplecomv1.VisitorsApp, of workloads, failed error) {
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, ObservedGeneration: app.Generation}
	refused := (*refusal)(nil)
	switch {
	case errors.As(failed, &refused):
		condition.Reason, condition.Message = refused.reason, refused.message
	case failed != nil:
		condition.Reason, condition.Message = "Failed", failed.Error()
	case !of.begun:
		condition.Reason, condition.Message = "DatabaseStarts", "The database is not ready yet. Backend and frontend come after it."
	case of.database.Status.ReadyReplicas == 0:
		condition.Reason, condition.Message = "DatabaseDown", "The database "+of.database.Name+" is down. The page says so, and visits are not counted."
	case !ready(of.backend) || !ready(of.frontend):
		condition.Reason, condition.Message = "PodsStart", "Pods of the backend or the frontend are not ready yet."
	default:
		condition.Reason, condition.Status = "Ready", metav1.ConditionTrue
	}
	meta.SetStatusCondition(&app.Status.Conditions, condition)
	app.Status.Ready = condition.Status == metav1.ConditionTrue
	app.Status.BackendImage, app.Status.FrontendImage = i.Visitors, i.Visitors
	app.Status.URL = "http://" + app.Name + "-frontend." + app.Namespace + ".svc:3000"
}
