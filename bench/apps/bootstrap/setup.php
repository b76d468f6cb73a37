<?php

declare(strict_types=1);

/*
 * Writes an application of 300 class files, similar to services of a real one: each has a few
 * properties, some other services and a few methods. Written again for each server, into its own
 * folder; the files are byte-identical.
 */

namespace Samovar\Bench\Bootstrap;

require __DIR__ . '/src/folder.php';

const AREAS = [
    'Billing', 'Cart', 'Catalog', 'Customer', 'Delivery', 'Mail', 'Pricing', 'Report', 'Search', 'Stock',
];
const CLASSES_PER_AREA = 30;

/** Name of the service with that number, below the namespace Generated. */
function serviceName(int $number): string
{
    return sprintf('%s\Service%02d', AREAS[$number % count(AREAS)], intdiv($number, count(AREAS)));
}

/**
 * The services that a service depends on: up to three with a smaller number, so that there are no
 * cycles.
 *
 * @return list<int>
 */
function needs(int $number): array
{
    $candidates = [intdiv($number, 2), intdiv($number, 3), $number - 7];

    return array_values(array_unique(array_filter($candidates, static fn (int $n): bool => $n >= 0 && $n < $number)));
}

/** Text of a service's file. */
function serviceText(int $number): string
{
    [$area, $class] = explode('\\', serviceName($number));
    $parameters = $prices = '';
    foreach (needs($number) as $position => $needed) {
        $parameters .= sprintf("        private \\Generated\\%s \$service%d,\n", serviceName($needed), $position);
        $prices .= sprintf(" + \$this->service%d->weight()", $position);
    }
    $rate = 100 + $number * 37 % 900;

    return <<<PHP
        <?php

        declare(strict_types=1);

        namespace Generated\\{$area};

        /** Service {$number}. */
        final class {$class}
        {
            public const NUMBER = {$number};
            private const RATES = ['standard' => {$rate}, 'reduced' => {$rate} / 2, 'free' => 0];

            private array \$lines = [];
            private string \$currency = 'EUR';

            public function __construct(
        {$parameters}        private string \$label = '{$area} {$number}',
            ) {
            }

            public function label(): string
            {
                return \$this->label;
            }

            public function weight(): int
            {
                return self::NUMBER % 11 + 1;
            }

            public function price(string \$rate, int \$quantity): int
            {
                if (!isset(self::RATES[\$rate]) || \$quantity < 0) {
                    throw new \\InvalidArgumentException("No rate \$rate for \$quantity of {\$this->label}");
                }

                return (int) (self::RATES[\$rate] * \$quantity){$prices};
            }

            public function add(string \$rate, int \$quantity): static
            {
                \$copy = clone \$this;
                \$price = \$this->price(\$rate, \$quantity);
                \$copy->lines[] = ['rate' => \$rate, 'quantity' => \$quantity, 'price' => \$price];

                return \$copy;
            }

            public function total(): string
            {
                return sprintf('%.2f %s', array_sum(array_column(\$this->lines, 'price')) / 100, \$this->currency);
            }
        }

        PHP;
}

/** Text of the file that defines how each service is created. */
function definitionsText(int $count): string
{
    $lines = '';
    for ($number = 0; $number < $count; $number++) {
        $arguments = array_map(
            static fn (int $needed): string => sprintf('$c->get(\Generated\%s::class)', serviceName($needed)),
            needs($number),
        );
        $name = serviceName($number);
        $lines .= sprintf(
            "    \\Generated\\%s::class => static fn (Container \$c) => new \\Generated\\%s(%s),\n",
            $name,
            $name,
            implode(', ', $arguments),
        );
    }

    return "<?php\n\ndeclare(strict_types=1);\n\nuse Samovar\\Bench\\Bootstrap\\Container;\n\nreturn [\n$lines];\n";
}

/** Opcache does not cache a file younger than two seconds (opcache.file_update_protection): these
 * files get an older time. */
function write(string $file, string $text): void
{
    file_put_contents($file, $text);
    touch($file, time() - 60);
}

$folder = generatedFolder();
$count = count(AREAS) * CLASSES_PER_AREA;
for ($number = 0; $number < $count; $number++) {
    $file = $folder . '/' . strtr(serviceName($number), '\\', '/') . '.php';
    is_dir(dirname($file)) || mkdir(dirname($file), 0777, true);
    write($file, serviceText($number));
}
write("$folder/definitions.php", definitionsText($count));
