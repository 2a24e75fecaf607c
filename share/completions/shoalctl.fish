# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_shoalctl_global_optspecs
    string join \n s/socket= json f/file= complete= h/help V/version
end

function __fish_shoalctl_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_shoalctl_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_shoalctl_using_subcommand
    set -l cmd (__fish_shoalctl_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c shoalctl -n "__fish_shoalctl_needs_command" -s s -l socket -d 'Socket of the router, or HOST:PORT of its `cli-listen` [default: $SHOAL_CLI_SOCK, /run/shoal/cli.sock, /run/vpp/cli.sock, ./cli.sock]' -r -F
complete -c shoalctl -n "__fish_shoalctl_needs_command" -s f -l file -d 'Run the commands of a file; `-` is standard input' -r -F
complete -c shoalctl -n "__fish_shoalctl_needs_command" -l complete -d 'What may follow these words, a line each, as shells ask for it' -r
complete -c shoalctl -n "__fish_shoalctl_needs_command" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_needs_command" -s h -l help -d 'Print help'
complete -c shoalctl -n "__fish_shoalctl_needs_command" -s V -l version -d 'Print version'
complete -c shoalctl -n "__fish_shoalctl_needs_command" -a "stats" -d 'Read counters straight from the router\'s memory'
complete -c shoalctl -n "__fish_shoalctl_needs_command" -a "api" -d 'Send any message of the binary API, as JSON'
complete -c shoalctl -n "__fish_shoalctl_needs_command" -a "nat-log" -d 'Find out which host had an outside port at a time, by the router\'s syslog messages'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and not __fish_seen_subcommand_from ls get dump poll" -s s -l socket -d 'Socket of the segment [default: $SHOAL_STATS_SOCK, /run/shoal/stats.sock, ./stats.sock]' -r -F
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and not __fish_seen_subcommand_from ls get dump poll" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and not __fish_seen_subcommand_from ls get dump poll" -s h -l help -d 'Print help'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and not __fish_seen_subcommand_from ls get dump poll" -f -a "ls" -d 'List the names of counters'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and not __fish_seen_subcommand_from ls get dump poll" -f -a "get" -d 'Print counters as they are now'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and not __fish_seen_subcommand_from ls get dump poll" -f -a "dump" -d 'Print counters as they are now'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and not __fish_seen_subcommand_from ls get dump poll" -f -a "poll" -d 'Print counters again and again, and follow a router that restarts'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from ls" -s s -l socket -d 'Socket of the segment [default: $SHOAL_STATS_SOCK, /run/shoal/stats.sock, ./stats.sock]' -r -F
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from ls" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from get" -s i -l only-index -d 'Only this object: of interfaces\' counters, the sw_if_index' -r
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from get" -s s -l socket -d 'Socket of the segment [default: $SHOAL_STATS_SOCK, /run/shoal/stats.sock, ./stats.sock]' -r -F
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from get" -s z -l no-zeros -d 'Leave out zeros'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from get" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from dump" -s i -l only-index -d 'Only this object: of interfaces\' counters, the sw_if_index' -r
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from dump" -s s -l socket -d 'Socket of the segment [default: $SHOAL_STATS_SOCK, /run/shoal/stats.sock, ./stats.sock]' -r -F
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from dump" -s z -l no-zeros -d 'Leave out zeros'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from dump" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from dump" -s h -l help -d 'Print help'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from poll" -s i -l only-index -d 'Only this object: of interfaces\' counters, the sw_if_index' -r
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from poll" -l interval -d 'Seconds between two rounds' -r
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from poll" -l count -d 'End after so many rounds' -r
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from poll" -s s -l socket -d 'Socket of the segment [default: $SHOAL_STATS_SOCK, /run/shoal/stats.sock, ./stats.sock]' -r -F
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from poll" -s z -l no-zeros -d 'Leave out zeros'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from poll" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand stats; and __fish_seen_subcommand_from poll" -s h -l help -d 'Print help'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and not __fish_seen_subcommand_from list describe call watch" -s s -l socket -d 'Socket of the binary API [default: $SHOAL_API_SOCK, /run/shoal/api.sock, ./api.sock]' -r -F
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and not __fish_seen_subcommand_from list describe call watch" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and not __fish_seen_subcommand_from list describe call watch" -s h -l help -d 'Print help'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and not __fish_seen_subcommand_from list describe call watch" -f -a "list" -d 'List the messages this router has'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and not __fish_seen_subcommand_from list describe call watch" -f -a "describe" -d 'Print what a message is made of and how it is answered'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and not __fish_seen_subcommand_from list describe call watch" -f -a "call" -d 'Send a request and print each answer as a line of JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and not __fish_seen_subcommand_from list describe call watch" -f -a "watch" -d 'Ask for events and print each as a line of JSON, until interrupted'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and __fish_seen_subcommand_from list" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and __fish_seen_subcommand_from describe" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and __fish_seen_subcommand_from describe" -s h -l help -d 'Print help'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and __fish_seen_subcommand_from call" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and __fish_seen_subcommand_from call" -s h -l help -d 'Print help'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and __fish_seen_subcommand_from watch" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand api; and __fish_seen_subcommand_from watch" -s h -l help -d 'Print help'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand nat-log" -l at -d 'When, as 2026-11-27T21:15:00Z' -r
complete -c shoalctl -n "__fish_shoalctl_using_subcommand nat-log" -l protocol -d 'Only this protocol: tcp, udp or icmp' -r
complete -c shoalctl -n "__fish_shoalctl_using_subcommand nat-log" -l json -d 'Print answers as JSON'
complete -c shoalctl -n "__fish_shoalctl_using_subcommand nat-log" -s h -l help -d 'Print help'
complete -c shoalctl -n 'not __fish_seen_subcommand_from stats' -f -a '(shoalctl --complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
