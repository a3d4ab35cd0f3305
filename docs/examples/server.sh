while read -r request; do
    printf '%s\n' "$request" | awk -F '[][]' -v epsilon="$1" '{
        count = split($2, numbers, ",")
        for (i = 1; i <= count; i++) sum += numbers[i]
        split($3, rest, /[^0-9]+/)
        srand(rest[3] % 2147483648)
        for (i = 0; i < rest[2]; i++)
            printf "%.17g\n", sum + (log(1 - rand()) - log(1 - rand())) / epsilon
    }'
done
