# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_shoal_global_optspecs
    string join \n c/config= i/interactive check-config v/version h/help no-alloc-intercept
end

function __fish_shoal_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_shoal_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_shoal_using_subcommand
    set -l cmd (__fish_shoal_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c shoal -n "__fish_shoal_needs_command" -s c -l config -d 'Read start-up settings from FILE' -r -F
complete -c shoal -n "__fish_shoal_needs_command" -s i -l interactive -d 'CLI on this terminal, as unix { interactive }'
complete -c shoal -n "__fish_shoal_needs_command" -l check-config -d 'Read and check the settings, start nothing'
complete -c shoal -n "__fish_shoal_needs_command" -s v -l version -d 'Print the version'
complete -c shoal -n "__fish_shoal_needs_command" -s h -l help -d 'Print help'
complete -c shoal -n "__fish_shoal_needs_command" -l no-alloc-intercept -d 'Accepted as VPP has it; nothing to do here'
complete -c shoal -n "__fish_shoal_needs_command" -a "doctor" -d 'Tell what this machine can do for the router and what to type; changes nothing'
complete -c shoal -n "__fish_shoal_needs_command" -a "tune" -d 'List the subsets of what the doctor finds, apply them, undo them'
complete -c shoal -n "__fish_shoal_using_subcommand doctor" -l json -d 'Answer in JSON'
complete -c shoal -n "__fish_shoal_using_subcommand tune; and not __fish_seen_subcommand_from apply undo" -l json -d 'Answer in JSON'
complete -c shoal -n "__fish_shoal_using_subcommand tune; and not __fish_seen_subcommand_from apply undo" -f -a "apply" -d 'Apply subsets; what was there before is recorded'
complete -c shoal -n "__fish_shoal_using_subcommand tune; and not __fish_seen_subcommand_from apply undo" -f -a "undo" -d 'Restore what was there before, of all subsets or of those named'
complete -c shoal -n "__fish_shoal_using_subcommand tune; and __fish_seen_subcommand_from apply" -l dry-run -d 'Say what would be done'
complete -c shoal -n "__fish_shoal_using_subcommand tune; and __fish_seen_subcommand_from apply" -l json -d 'Answer in JSON'
complete -c shoal -n "__fish_shoal_using_subcommand tune; and __fish_seen_subcommand_from apply" -l persist -d 'At each boot too: a file in sysctl.d or modules-load.d'
complete -c shoal -n "__fish_shoal_using_subcommand tune; and __fish_seen_subcommand_from undo" -l dry-run -d 'Say what would be done'
complete -c shoal -n "__fish_shoal_using_subcommand tune; and __fish_seen_subcommand_from undo" -l json -d 'Answer in JSON'
