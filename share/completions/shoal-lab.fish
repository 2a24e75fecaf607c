# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_shoal_lab_global_optspecs
    string join \n config= results= json h/help V/version
end

function __fish_shoal_lab_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_shoal_lab_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_shoal_lab_using_subcommand
    set -l cmd (__fish_shoal_lab_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -s V -l version -d 'Print version'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "doctor" -d 'What can run here, what limits it, and how to mend that'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "selftest" -d 'The tester without a device: its highest rate, its own delay, its stalls'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "list" -d 'What there is to choose from'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "run" -d 'Run one test'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "suite" -d 'Run a set of tests'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "report" -d 'Make a page of one or several results folders'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "compare" -d 'Is there a difference between two results, and how sure is that?'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "show" -d 'Print the figures of a results folder'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "resume" -d 'Go on with a run that was interrupted'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "config" -d 'Settings'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "siitperf-tp" -d 'As siitperf-tp, with its arguments and output'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "siitperf-lat" -d 'As siitperf-lat'
complete -c shoal-lab -n "__fish_shoal_lab_needs_command" -f -a "siitperf-pdv" -d 'As siitperf-pdv'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand doctor" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand doctor" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand doctor" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand selftest" -l transport -d 'Wires, several with commas: memif, af-packet, af-xdp, dpdk (a memif between two of its devices)' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand selftest" -l size -d 'Frame sizes with FCS' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand selftest" -l duration -d 'Seconds of each trial' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand selftest" -l when-disturbed -d 'What is done with trials during which others had the processors' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand selftest" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand selftest" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand selftest" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand selftest" -s h -l help -d 'Print help'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand list" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand list" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand list" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l dut -d 'Devices (`shoal-lab list duts`), several with commas' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l transport -d 'The wire: memif, af-packet, af-xdp, tap; the device\'s best if left out' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l size -d 'Frame sizes with FCS, or mixes such as `imix:classic`, several with commas' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l ip -d '4, 6, or both with a comma' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l direction -d 'fwd, rev or bi' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l forwarding -d 'What the device does: route, cross-connect, bridge, snat' -r -f -a "route\t''
cross-connect\t''
bridge\t''
snat\t''"
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l workers -d 'Workers of the device, several with commas' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l runs -d 'How often each is measured' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l duration -d 'Seconds of each trial' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l preset -d 'strict (60 s, 20 runs, to the frame), normal (10 s, 10 runs, 0.1 %), quick (2 s, 3 runs, 1 %), ci' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l frame -d 'own (every frame signed and accounted for) or siitperf (its plain form)' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l when-disturbed -d 'What is done with trials during which others had the processors: mark, repeat, or refuse, which gives no figure if it happens each time' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l max -d 'The end searches begin from, in frames a second and direction; the self-test\'s rate if left out' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l budget -d 'Refuse what would take longer: `30m`, `9h`' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l name -d 'What the results folder is called, after the date' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l assert -d 'What must hold, such as `throughput_median>=200k`; may be given several times' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l junit -d 'Write the verdicts as JUnit' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l replay -d 'The program of replays, `shoal-lab-graph`; looked for in the checkout, beside this one and on the path if left out' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l energy -d 'Where energy is measured: none, rapl, `command:PROGRAM`, `snmp-raritan:HOST/OUTLET`' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -s t -l tunables -d 'The profile\'s own settings: `size=64,vm=var2`, or as its argument parser wants them' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l port-rate -d 'What the profile\'s rates are scaled to: `10gbpsl1`, `1mpps`, `50%`' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l rate -d 'Offered rate in frames a second and direction, for tests that need one; the throughput if left out. Of address-capacity: at which addresses are taught' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l percent -d 'Shares of that rate in percent, several with commas: `latency --percent 10,50,90`' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l flows -d 'Flows (source ports), connections of a NAT, addresses of a bridge; for sweeps several with commas' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l routes -d 'Further routes in the device, for sweeps several with commas' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l scenario -d 'Scenarios of `replay`, several with commas: `ip4-1m`, `ip4-ecmp16`; `docs/bench.md` has all' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l base -d 'Another build to compare with, in turns: the router, or a folder or checkout that has it and its `shoal-lab-graph`' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l base-replay -d 'The other build\'s `shoal-lab-graph`; looked for beside the router if left out' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l verify -d 'Look at each received frame whole, not at one in 64'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l dry-run -d 'Print what would be done: commands, frames, time. Nothing is started'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l yes -d 'Do it even if it takes longer than the budget'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l plain -d 'Plain lines even on a terminal'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand run" -s h -l help -d 'Print help'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l dut -d 'Devices (`shoal-lab list duts`), several with commas' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l transport -d 'The wire: memif, af-packet, af-xdp, tap; the device\'s best if left out' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l size -d 'Frame sizes with FCS, or mixes such as `imix:classic`, several with commas' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l ip -d '4, 6, or both with a comma' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l direction -d 'fwd, rev or bi' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l forwarding -d 'What the device does: route, cross-connect, bridge, snat' -r -f -a "route\t''
cross-connect\t''
bridge\t''
snat\t''"
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l workers -d 'Workers of the device, several with commas' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l runs -d 'How often each is measured' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l duration -d 'Seconds of each trial' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l preset -d 'strict (60 s, 20 runs, to the frame), normal (10 s, 10 runs, 0.1 %), quick (2 s, 3 runs, 1 %), ci' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l frame -d 'own (every frame signed and accounted for) or siitperf (its plain form)' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l when-disturbed -d 'What is done with trials during which others had the processors: mark, repeat, or refuse, which gives no figure if it happens each time' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l max -d 'The end searches begin from, in frames a second and direction; the self-test\'s rate if left out' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l budget -d 'Refuse what would take longer: `30m`, `9h`' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l name -d 'What the results folder is called, after the date' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l assert -d 'What must hold, such as `throughput_median>=200k`; may be given several times' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l junit -d 'Write the verdicts as JUnit' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l replay -d 'The program of replays, `shoal-lab-graph`; looked for in the checkout, beside this one and on the path if left out' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l energy -d 'Where energy is measured: none, rapl, `command:PROGRAM`, `snmp-raritan:HOST/OUTLET`' -r
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l base -d 'Another build to compare with, in turns: the router, or a folder or checkout that has it and its `shoal-lab-graph`' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l base-replay -d 'The other build\'s `shoal-lab-graph`; looked for beside the router if left out' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l verify -d 'Look at each received frame whole, not at one in 64'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l dry-run -d 'Print what would be done: commands, frames, time. Nothing is started'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l yes -d 'Do it even if it takes longer than the budget'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l plain -d 'Plain lines even on a terminal'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand suite" -s h -l help -d 'Print help'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand report" -s o -l output -d 'The page; in the first folder if left out' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand report" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand report" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand report" -s h -l help -d 'Print help'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand compare" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand compare" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand compare" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand compare" -s h -l help -d 'Print help'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand show" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand show" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand show" -s h -l help -d 'Print help'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand resume" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand resume" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand resume" -s h -l help -d 'Print help'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand config; and not __fish_seen_subcommand_from show" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand config; and not __fish_seen_subcommand_from show" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand config; and not __fish_seen_subcommand_from show" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand config; and not __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand config; and not __fish_seen_subcommand_from show" -f -a "show" -d 'Print all settings, in the form of the file'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand config; and __fish_seen_subcommand_from show" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand config; and __fish_seen_subcommand_from show" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand config; and __fish_seen_subcommand_from show" -l origin -d 'And where each comes from'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand config; and __fish_seen_subcommand_from show" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand siitperf-tp" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand siitperf-tp" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand siitperf-tp" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand siitperf-lat" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand siitperf-lat" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand siitperf-lat" -l json -d 'One JSON object a line instead of text'
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand siitperf-pdv" -l config -d 'Settings, as `shoal-lab config show` prints them' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand siitperf-pdv" -l results -d 'Where results folders are made' -r -F
complete -c shoal-lab -n "__fish_shoal_lab_using_subcommand siitperf-pdv" -l json -d 'One JSON object a line instead of text'
