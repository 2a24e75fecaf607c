complete -c shoalctl -s s -l socket -d 'Socket of the router [default: $SHOAL_CLI_SOCK, /run/shoal/cli.sock, ./cli.sock]' -r -F
complete -c shoalctl -s f -l file -d 'Run the commands of a file; `-` is standard input' -r -F
complete -c shoalctl -l json -d 'Print answers as JSON'
complete -c shoalctl -s h -l help -d 'Print help'
complete -c shoalctl -s V -l version -d 'Print version'
