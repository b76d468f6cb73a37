<?php

declare(strict_types=1);

return [
    'greeting' => 'Guten Tag',
    'home' => 'Start',
    'visits' => '{1} Du bist zum ersten Mal hier.|[2,*] Du warst :count-mal hier.',
    'since' => 'Offen seit :day.',
    'welcome' => 'Willkommen, :name!',
    'bye' => 'Auf Wiedersehen.',
    'failed' => 'Das stimmt nicht.',
    'stored' => '„:title“ gespeichert.',
    'changed' => 'Geändert.',
    'deleted' => 'Gelöscht.',
    'none' => 'Noch keine Notizen.',
];
