// Package deploy is the suite of config/: what `make deploy` installs is admitted under
// the restricted profile, its account has the rights that the operator needs and no
// others, and what `make undeploy` leaves. All kinds are led from creation over changes to
// deletion, so what the account asks for is what the command rbac prints. Make and kubectl are the real ones. Nothing
// runs in the deployed pod, so the manager runs beside the cluster, with the settings of
// the Deployment and a token of its service account.
package deploy
