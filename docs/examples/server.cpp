#include <iostream>
#include <random>
#include <sstream>

int main(int, char **arguments) {
    std::exponential_distribution<double> noise(std::stod(arguments[1]));
    std::cout.precision(17);
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream numbers(line.substr(line.find('[') + 1));
        double sum = 0;
        for (double number; numbers >> number; numbers.ignore()) sum += number;
        std::mt19937_64 rng(std::stoull(line.substr(line.find("\"seed\":") + 7)));
        for (long runs = std::stol(line.substr(line.find("\"runs\":") + 7)); runs > 0; runs--)
            std::cout << sum + noise(rng) - noise(rng) << '\n';
        std::cout.flush();
    }
}
