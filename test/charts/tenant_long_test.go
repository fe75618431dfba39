//go:build long

package charts

import (
	"context"
	"fmt"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("a tenant that may write very many Secrets", func() {
	It("cannot block a CR by its revisions", func(ctx context.Context) {
		s, tenant := ledgered(ctx, versioned, "")
		s.Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "many")
		specified(ctx, s, cr, `{"a":"c"}`)
		pausedAnd(ctx, cr, `"true"`)
		var made errgroup.Group
		made.SetLimit(20)
		for version := range 2600 { // Their names are listed before that of v2.
			made.Go(func() error {
				forged := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: fmt.Sprintf("sh.helm.release.v1.many.v%d", 10000+version)}, Type: "helm.sh/release.v1"}
				forged.Labels = map[string]string{"owner": "helm", "name": "many", "status": "deployed", "version": strconv.Itoa(10000 + version)}
				return tenant.Create(ctx, forged)
			})
		}
		Expect(made.Wait()).To(Succeed())
		pausedAnd(ctx, cr, `null`)
		specified(ctx, s, cr, `{"a":"d"}`)
		Expect(isGone(priorityClass(s, "many-c"))(ctx)).To(site.BeGone())
		remove(ctx, cr)
		Expect(isGone(priorityClass(s, "many-d"))(ctx)).To(site.BeGone())
		Expect(statuses(s, "many")(ctx)).To(BeEmpty())
	})
})
