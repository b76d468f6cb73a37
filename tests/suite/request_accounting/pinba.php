<?php

// Prints the results of the pinba extension's functions. pinba.txt contains the results of the real
// extension (1.1.2).
if (!function_exists('show')) {
    function show(string $label, mixed $value): void
    {
        $text = var_export(is_resource($value) ? get_resource_type($value) : $value, true);
        echo $label, ': ', preg_replace('/\d+\.\d+(E-\d+)?/', 'F', $text), "\n";
    }

    function attempt(string $label, callable $step): void
    {
        try {
            show($label, $step());
        } catch (Throwable $thrown) {
            echo $label, ' threw ', get_class($thrown), ': ', $thrown->getMessage(), "\n";
        }
    }
}
set_error_handler(function ($n, $m) { echo "[error $n: $m]\n"; return true; });
attempt('start', fn() => $GLOBALS['a'] = pinba_timer_start(['group' => 'mysql', 'op' => 'select']));
show('info', pinba_timer_get_info($GLOBALS['a']));
attempt('stop', fn() => pinba_timer_stop($GLOBALS['a']));
attempt('stop again', fn() => pinba_timer_stop($GLOBALS['a']));
show('info stopped', pinba_timer_get_info($GLOBALS['a']));
attempt('start empty', fn() => pinba_timer_start([]));
attempt('start list', fn() => pinba_timer_get_info(pinba_timer_start(['x', 'y'])));
attempt('start nested', fn() => pinba_timer_start(['a' => ['b']]));
attempt('start object', fn() => pinba_timer_start(['a' => new stdClass]));
attempt('start types', fn() => pinba_timer_get_info(pinba_timer_start(['i' => 1, 'f' => 1.5, 't' => true, 'f2' => false, 'n' => null])));
attempt('start intkey', fn() => pinba_timer_get_info(pinba_timer_start([5 => 'x'])));
attempt('start data', fn() => pinba_timer_get_info(pinba_timer_start(['a' => 'b'], ['d' => 1])));
attempt('start data empty', fn() => pinba_timer_get_info(pinba_timer_start(['a' => 'b'], [])));
attempt('start data hit', fn() => pinba_timer_get_info(pinba_timer_start(['a' => 'b'], ['d' => 1], 5)));
attempt('start hit 0', fn() => pinba_timer_get_info(pinba_timer_start(['a' => 'b'], ['d'], 0)));
attempt('start hit -1', fn() => pinba_timer_get_info(pinba_timer_start(['a' => 'b'], ['d'], -1)));
attempt('start string', fn() => pinba_timer_start('x'));
attempt('add', fn() => pinba_timer_get_info($GLOBALS['b'] = pinba_timer_add(['a' => 'added'], 0.25)));
attempt('add data', fn() => pinba_timer_get_info(pinba_timer_add(['a' => 'added'], 0.25, ['x' => 1])));
attempt('add hit', fn() => pinba_timer_get_info(pinba_timer_add(['a' => 'added'], 0.25, ['x' => 1], 9)));
attempt('add negative', fn() => pinba_timer_get_info(pinba_timer_add(['a' => 'added'], -1)));
attempt('add empty', fn() => pinba_timer_add([], 1));
attempt('stop added', fn() => pinba_timer_stop($GLOBALS['b']));
attempt('merge', fn() => [pinba_timer_data_merge($GLOBALS['b'], ['k' => 'v']), pinba_timer_get_info($GLOBALS['b'])]);
attempt('merge2', fn() => [pinba_timer_data_merge($GLOBALS['b'], ['k' => 'w', 'm' => 2]), pinba_timer_get_info($GLOBALS['b'])]);
attempt('replace', fn() => [pinba_timer_data_replace($GLOBALS['b'], ['z' => 1]), pinba_timer_get_info($GLOBALS['b'])]);
attempt('replace null', fn() => [pinba_timer_data_replace($GLOBALS['b'], null), pinba_timer_get_info($GLOBALS['b'])]);
attempt('replace empty', fn() => [pinba_timer_data_replace($GLOBALS['b'], []), pinba_timer_get_info($GLOBALS['b'])]);
attempt('tags merge', fn() => [pinba_timer_tags_merge($GLOBALS['b'], ['a' => 'new', 'c' => 'd']), pinba_timer_get_info($GLOBALS['b'])]);
attempt('tags merge empty', fn() => pinba_timer_tags_merge($GLOBALS['b'], []));
attempt('tags replace', fn() => [pinba_timer_tags_replace($GLOBALS['b'], ['q' => 'r']), pinba_timer_get_info($GLOBALS['b'])]);
attempt('tags replace empty', fn() => pinba_timer_tags_replace($GLOBALS['b'], []));
attempt('tags replace bad', fn() => pinba_timer_tags_replace($GLOBALS['b'], ['x' => []]));
attempt('delete', fn() => pinba_timer_delete($GLOBALS['b']));
attempt('delete again', fn() => pinba_timer_delete($GLOBALS['b']));
attempt('info of file', fn() => pinba_timer_get_info(fopen('php://memory', 'r')));
attempt('info of int', fn() => pinba_timer_get_info(1));
attempt('timers', fn() => array_map('is_resource', pinba_timers_get()));
attempt('timers stopped', fn() => count(pinba_timers_get(PINBA_ONLY_STOPPED_TIMERS)));
attempt('timers running', fn() => count(pinba_timers_get(PINBA_ONLY_RUNNING_TIMERS)));
attempt('tag set', fn() => pinba_tag_set('t', 'v'));
attempt('tag get', fn() => pinba_tag_get('t'));
attempt('tag get none', fn() => pinba_tag_get('none'));
attempt('tag set empty', fn() => pinba_tag_set('', 'v'));
attempt('tag set value empty', fn() => pinba_tag_set('e', ''));
attempt('tag int', fn() => [pinba_tag_set('i', 5), pinba_tag_get('i')]);
attempt('tags', fn() => pinba_tags_get());
attempt('tag delete', fn() => pinba_tag_delete('t'));
attempt('tag delete none', fn() => pinba_tag_delete('t'));
attempt('script', fn() => pinba_script_name_set('/shop'));
attempt('host', fn() => pinba_hostname_set('web1'));
attempt('server', fn() => pinba_server_name_set('shop.example'));
attempt('schema', fn() => pinba_schema_set('https'));
attempt('request time', fn() => pinba_request_time_set(1.5));
attempt('request time neg', fn() => pinba_request_time_set(-1.5));
$info = pinba_get_info();
show('info keys', array_keys($info));
foreach (['hostname', 'server_name', 'script_name', 'schema', 'tags'] as $k) show("info $k", $info[$k] ?? 'unset');
foreach ($info as $k => $v) echo $k, ' ', gettype($v), "\n";
show('info timers', $info['timers']);
attempt('timers stop', fn() => pinba_timers_stop());
attempt('running now', fn() => count(pinba_timers_get(PINBA_ONLY_RUNNING_TIMERS)));
attempt('data', fn() => gettype(pinba_get_data()));
attempt('flush', fn() => pinba_flush());
attempt('after flush', fn() => [count(pinba_timers_get()), pinba_get_info()['timers'], pinba_tags_get()]);
attempt('flush name', fn() => pinba_flush('name'));
attempt('flush flags', fn() => pinba_flush('', PINBA_FLUSH_ONLY_STOPPED_TIMERS));
attempt('reset', fn() => pinba_reset());
attempt('after reset', fn() => [pinba_tags_get(), pinba_get_info()['timers'], pinba_get_info()['script_name'], pinba_get_info()['hostname'] === gethostname()]);
$x = pinba_timer_start(['same' => '1']); pinba_timer_stop($x); $y = pinba_timer_start(['same' => '1']); pinba_timer_stop($y);
show('same tags', pinba_get_info()['timers']);
$m = pinba_timer_start(['z' => '1', 'a' => '2']); pinba_timer_stop($m); 
show('order', pinba_get_info()['timers']);
unset($x); show('timers after unset', count(pinba_timers_get())); show('info after unset', count(pinba_get_info()['timers']));
attempt('too few', fn() => pinba_timer_start());
attempt('too many', fn() => pinba_timers_stop(1));
