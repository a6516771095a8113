// cert-manager's own controllers and its CA injector in one process, for the end-to-end test of the chart.
//
// The commands of cert-manager are modules of their own that the Go module proxy does not serve. The controllers, the
// issuers and the injector that they start are packages of the main module, and are started here as those commands do.
//
// Source: cert-manager v1.21.2 cmd/controller/app/controller.go, cmd/cainjector/app/cainjector.go.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

func main() {
	kubeconfig := os.Getenv("KUBECONFIG")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctrl.SetLogger(klog.Background())

	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig: kubeconfig,
		IssuerOptions: controller.IssuerOptions{
			ClusterResourceNamespace: "cert-manager",
		},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Second,
			CertificateRequestMaximumBackoffDuration: time.Minute,
		},
	})
	check(err)
	for name, construct := range controller.Known() {
		made, err := construct(factory)
		check(err)
		go func() {
			if err := made.Run(1, ctx); err != nil {
				log.Fatalf("%s: %v", name, err)
			}
		}()
	}
	shared, err := factory.Build()
	check(err)
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())

	check(inject(ctx, kubeconfig))
}

// inject writes the CA of Certificates into the webhook configurations that ask for it by their annotation.
func inject(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// The name under which it applies the CA.
	config.UserAgent = "cert-manager-cainjector/e2e"
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistration.AddToScheme, certmanager.AddToScheme, core.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			"mutatingwebhookconfiguration":   true,
			"validatingwebhookconfiguration": true,
		},
	})
	if err != nil {
		return err
	}
	log.Print("cert-manager's controllers run")
	return manager.Start(ctx)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
