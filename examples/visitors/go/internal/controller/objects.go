package controller

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	examplecomv1 "github.com/ensign-operator/ensign/examples/visitors/go/api/v1"
)

// Images are what runs in the pods.
type Images struct{ Visitors, MySQL string }

// part is one of a site: the value of a label.
type part string

const (
	database part = "database"
	backend  part = "backend"
	frontend part = "frontend"
)

// nameOf returns the name of all objects of a part.
func nameOf(app *examplecomv1.VisitorsApp, p part) string {
	if p == database {
		return app.Name + "-mysql"
	}
	return app.Name + "-" + string(p)
}

// labels may never change: selectors of StatefulSets and Deployments are immutable.
func labels(app *examplecomv1.VisitorsApp, p part) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "visitors", "app.kubernetes.io/instance": app.Name, "app.kubernetes.io/component": string(p)}
}

func metadata(app *examplecomv1.VisitorsApp, p part) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: app.Namespace, Name: nameOf(app, p), Labels: labels(app, p)}
}

// service returns the Service of a part. That of the database has no address of its own: a
// StatefulSet's pods are reached by name.
func service(app *examplecomv1.VisitorsApp, p part, port int32) *corev1.Service {
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metadata(app, p),
		Spec:       corev1.ServiceSpec{Selector: labels(app, p), Ports: []corev1.ServicePort{{Name: "http", Port: port, TargetPort: intstr.FromString("http")}}},
	}
	if p == database {
		s.Spec.ClusterIP = corev1.ClusterIPNone
		s.Spec.Ports[0].Name, s.Spec.Ports[0].TargetPort = "mysql", intstr.FromString("mysql")
	}
	return s
}

func (i Images) backend(app *examplecomv1.VisitorsApp) *appsv1.Deployment {
	return i.deployment(app, backend, app.Spec.Size, 8000,
		corev1.EnvVar{Name: "DATABASE_HOST", Value: nameOf(app, database)},
		fromSecret(app, "DATABASE_PASSWORD", "password"))
}

func (i Images) frontend(app *examplecomv1.VisitorsApp) *appsv1.Deployment {
	title := ""
	if app.Spec.Title != nil {
		title = *app.Spec.Title
	}
	return i.deployment(app, frontend, 1, 3000,
		corev1.EnvVar{Name: "BACKEND_URL", Value: "http://" + nameOf(app, backend) + ":8000"},
		// Kubernetes would put variables in the place of $(NAME).
		corev1.EnvVar{Name: "TITLE", Value: strings.ReplaceAll(title, "$", "$$")})
}

// deployment returns that of the application's part. The readiness of a backend does not ask the
// database: without one the page can still say so.
func (i Images) deployment(app *examplecomv1.VisitorsApp, p part, replicas, port int32, env ...corev1.EnvVar) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metadata(app, p),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels(app, p)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels(app, p)},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken: new(false),
					SecurityContext:              podSecurity(),
					Containers: []corev1.Container{{
						Name: string(p), Image: i.Visitors, Args: []string{string(p)}, Env: env,
						Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port}},
						ReadinessProbe: &corev1.Probe{
							ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")}},
							PeriodSeconds: 5,
						},
						Resources:       resources("10m", "32Mi", "128Mi"),
						SecurityContext: containerSecurity(),
					}},
				},
			},
		},
	}
}

func (i Images) database(app *examplecomv1.VisitorsApp) *appsv1.StatefulSet {
	security := podSecurity()
	// The image's user mysql.
	security.RunAsUser, security.RunAsGroup, security.FSGroup = new(int64(999)), new(int64(999)), new(int64(999))
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metadata(app, database),
		Spec: appsv1.StatefulSetSpec{
			Replicas:    new(int32(1)),
			ServiceName: nameOf(app, database),
			// A pod that never becomes ready is replaced when it is corrected.
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: labels(app, database)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels(app, database)},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken: new(false),
					SecurityContext:              security,
					Containers:                   []corev1.Container{i.server(app)},
					Volumes: []corev1.Volume{
						{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: nameOf(app, database)}}},
						{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
						{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
					},
				},
			},
		},
	}
}

// volume is the PVC of the database: an object like the others, with an owner. Of volumeClaimTemplates the
// StatefulSet would take, and delete, whatever PVC there is of the name.
func volume(app *examplecomv1.VisitorsApp) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metadata(app, database),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// server is the container of the database. While the image prepares an empty volume its server has no
// network, so TCP answers only when it is done.
func (i Images) server(app *examplecomv1.VisitorsApp) corev1.Container {
	answers := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("mysql")}}
	return corev1.Container{
		Name: "mysql", Image: i.MySQL,
		Ports: []corev1.ContainerPort{{Name: "mysql", ContainerPort: 3306}},
		Env: []corev1.EnvVar{
			fromSecret(app, "MYSQL_ROOT_PASSWORD", "root-password"),
			{Name: "MYSQL_DATABASE", Value: "visitors"},
			{Name: "MYSQL_USER", Value: "visitors"},
			fromSecret(app, "MYSQL_PASSWORD", "password"),
		},
		StartupProbe: &corev1.Probe{ProbeHandler: answers, PeriodSeconds: 2, FailureThreshold: 300},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
				Command: []string{"mysqladmin", "ping", "--protocol=tcp", "--host=127.0.0.1", "--connect-timeout=3"},
			}},
			PeriodSeconds: 5, TimeoutSeconds: 5,
		},
		LivenessProbe:   &corev1.Probe{ProbeHandler: answers, PeriodSeconds: 10, FailureThreshold: 6},
		Resources:       resources("50m", "512Mi", "1Gi"),
		SecurityContext: containerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			// A file system's own lost+found must not be in the data directory.
			{Name: "data", MountPath: "/var/lib/mysql", SubPath: "mysql"},
			{Name: "run", MountPath: "/var/run/mysqld"},
			{Name: "tmp", MountPath: "/tmp"},
		},
	}
}

func fromSecret(app *examplecomv1.VisitorsApp, variable, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: nameOf(app, database)}, Key: key,
	}}}
}

func resources(cpu, memory, most string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(most)},
	}
}

func podSecurity() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}
