module shoal.test/govpp

go 1.18

require go.fd.io/govpp v0.11.0

require (
	github.com/bennyscetbun/jsongo v1.1.2 // indirect
	github.com/fsnotify/fsnotify v1.7.0 // indirect
	github.com/ftrvxmtrx/fd v0.0.0-20150925145434-c6d800382fff // indirect
	github.com/lunixbochs/struc v0.0.0-20200521075829-a4cb8d33dbbe // indirect
	github.com/sirupsen/logrus v1.9.3 // indirect
	github.com/spf13/pflag v1.0.5 // indirect
	golang.org/x/sys v0.19.0 // indirect
	golang.org/x/text v0.18.0 // indirect
)
