//go:build long

package mysql

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var _ = Describe("20 users and 10 databases at once", func() {
	It("are all there, each with its own rights", func(ctx context.Context) {
		const users, bases = 20, 10
		place, prefix := ground.Namespace(ctx), own("crowd")
		secret(ctx, place, "password", "crowd")
		base := func(i int) string { return fmt.Sprintf("%s_base_%d", prefix, i%bases) }
		name := func(i int) string { return fmt.Sprintf("%s_user_%d", prefix, i) }
		var all []*unstructured.Unstructured
		began := time.Now()
		for i := range users {
			u := user(place, name(i), base(i), "CREATE", "DROP")
			u.SetName(fmt.Sprintf("user-%d", i))
			all = append(all, u)
		}
		for i := range bases {
			d := database(place, base(i), "Delete")
			d.SetName(fmt.Sprintf("database-%d", i))
			all = append(all, d)
		}
		for _, o := range all {
			ground.Create(ctx, o)
		}
		succeed(ctx, all...)
		AddReportEntry("seconds", fmt.Sprintf("%d objects were done after %s", len(all), time.Since(began)))
		for i := range users {
			Expect(as(name(i), "crowd", "CREATE TABLE "+base(i)+".t (c INT); DROP TABLE "+base(i)+".t")(ctx)).To(BeEmpty())
			_, err := as(name(i), "crowd", "CREATE TABLE "+base(i+1)+".t (c INT)")(ctx)
			Expect(err).To(denied())
		}
		for _, o := range all {
			Expect(ground.Client.Delete(ctx, o)).To(Succeed())
		}
		for _, o := range all {
			Eventually(ctx, gone(o)).Should(BeTrue(), o.GetName())
		}
		Expect(databases(ctx, prefix)).To(BeEmpty())
	})
})
